package api_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	lokipush "github.com/grafana/loki/pkg/push"

	"github.com/weir-run/weir/natives/loki/source/api"
)

// TestDecodingEnds: a decoder ends with its request, however long the body is.
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

// TestManyLabels: a stream with many labels is refused before all of them are
// decoded, because decoding them took quadratic time. The other streams of the
// request are accepted.
func TestManyLabels(t *testing.T) {
	var b strings.Builder
	object := map[string]string{}
	for i := range 170_000 {
		name := fmt.Sprintf("l%d", (i*7919)%170_000)
		fmt.Fprintf(&b, "%s=\"v\",", name)
		object[name] = "v"
	}
	r := start(t, nil)
	r.want(r.post(pushPath, body(t, stream("{"+b.String()+"}", "bad"), stream(`{app="good"}`, "good"))), 400, "label_limit is 15")
	labels, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	r.want(r.post(pushPath, []byte(`{"streams":[{"stream":`+string(labels)+`,"values":[["1","bad"]]},{"stream":{"app":"good"},"values":[["2","good"]]}]}`), ctype, asJSON),
		400, "label_limit is 15")
	r.lines(`{app="good"} good`, `{app="good"} good`)
	if got := r.Stats.DroppedLines()["label_limit"]; got != 2 {
		t.Errorf("dropped %v, want 2 lines for label_limit", r.Stats.DroppedLines())
	}
}

// TestDefaultLimits: the defaults are those of Loki. Data within them is
// accepted.
func TestDefaultLimits(t *testing.T) {
	labels := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "l%02d=\"v\",", i)
		}
		return "{" + b.String() + "}"
	}
	meta := func(n, size int) []lokipush.LabelAdapter {
		var out []lokipush.LabelAdapter
		for i := range n {
			out = append(out, lokipush.LabelAdapter{Name: fmt.Sprintf("m%03d", i), Value: strings.Repeat("x", size-4)})
		}
		return out
	}
	f := func(reason, says string, good, bad lokipush.Stream) {
		t.Helper()
		r := start(t, nil)
		r.want(r.post(pushPath, body(t, good)), 204, "")
		r.want(r.post(pushPath, body(t, bad, stream(`{app="other"}`, "x"))), 400, says)
		if got := r.Stats.DroppedLines(); got[reason] != 1 || len(got) != 1 {
			t.Errorf("dropped %v, want 1 for %s", got, reason)
		}
		n := 0
		for _, b := range r.sink.Logs() {
			n += b.Len()
		}
		if n != 2 {
			t.Errorf("%s: %d lines were accepted, want 2", reason, n)
		}
		r.stop()
	}
	with := func(m []lokipush.LabelAdapter) lokipush.Stream {
		s := stream(`{app="a"}`, "x")
		s.Entries[0].StructuredMetadata = m
		return s
	}
	long := strings.Repeat("n", 1024)
	f("label_limit", "label_limit is 15", stream(labels(15), "x"), stream(labels(16), "x"))
	f("label_limit", "label_name_length_limit is 1024", stream("{"+long+`="v"}`, "x"), stream("{n"+long+`="v"}`, "x"))
	f("label_limit", "label_value_length_limit is 2048", stream(`{a="`+long+long+`"}`, "x"), stream(`{a="n`+long+long+`"}`, "x"))
	f("line_too_long", "max_line_size is 262144", stream(`{a="b"}`, strings.Repeat("x", 256<<10)), stream(`{a="b"}`, strings.Repeat("x", 256<<10+1)))
	f("structured_metadata_limit", "structured_metadata_limit is 128", with(meta(128, 8)), with(meta(129, 8)))
	f("structured_metadata_limit", "max_structured_metadata_size is 65536", with(meta(1, 64<<10)), with(meta(1, 64<<10+1)))
	many := stream(`{a="b"}`, slices.Repeat([]string{"x"}, 10)...)
	r := start(t, func(a *api.Arguments) { a.Limits.LineLimit, a.Limits.StreamLimit = 9, 3 })
	r.want(r.post(pushPath, body(t, many)), 413, "line_limit (9)")
	r.want(r.post(pushPath, body(t, stream(`{a="1"}`, "x"), stream(`{a="2"}`, "x"), stream(`{a="3"}`, "x"), stream(`{a="1"}`, "y"))), 400, "stream_limit (3)")
	if got := r.Stats.DroppedLines()["stream_limit"]; got != 1 {
		t.Errorf("dropped %v, want 1 line for stream_limit", r.Stats.DroppedLines())
	}
	r.want(r.post(pushPath, body(t, stream(`{a="1"}`, "z")), tenant, "one"), 204, "")
	r.want(r.post(pushPath, body(t, stream(`{a="1"}`, "z")), tenant, "two"), 204, "")
	r.want(r.post(pushPath, body(t, stream(`{a="1"}`, "z")), tenant, "three"), 204, "")
	r.want(r.post(pushPath, body(t, stream(`{a="1"}`, "z")), tenant, "four"), 400, "stream_limit (3)")
}
