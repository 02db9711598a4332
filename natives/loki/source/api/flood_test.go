package api_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-run/weir/natives/loki/source/api"
)

// A decoder ends with its request, however long the body is.
func TestDecodingEnds(t *testing.T) {
	f := func(name, form string, body []byte) {
		t.Helper()
		streams, lines, ended := api.NewDecoder().EndAfter(2, form, body)
		if !ended || streams > 4*64 || lines > 4*1024 {
			t.Errorf("%s: ended is %v after %d streams, %d lines", name, ended, streams, lines)
		}
	}
	line := `["1","x"]`
	values := strings.Repeat(line+",", 20_000) + line
	var streams []string
	for i := range 2000 {
		streams = append(streams, fmt.Sprintf(`{"stream":{"a":"%d"},"values":[]}`, i))
	}
	f("lines", "json", []byte(`{"streams":[{"stream":{"a":"b"},"values":[`+values+`]}]}`))
	f("lines before their labels", "json", []byte(`{"streams":[{"values":[`+values+`],"stream":{"a":"b"}}]}`))
	f("streams", "json", []byte(`{"streams":[`+strings.Join(streams, ",")+`]}`))
	f("lines of a bad stream", "json", []byte(`{"streams":[{"stream":{},"values":[`+values+`]}]}`))
	f("raw lines", "raw", []byte(strings.Repeat("x\n", 20_000)))
}
