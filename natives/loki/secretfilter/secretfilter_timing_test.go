package secretfilter

import (
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/regex"
)

// timed contains lines as programs write them.
var timed = []struct{ name, line string }{
	{"plain", "Jan 02 15:04:05 web1 nginx[12345]: 10.1.2.3 - - \"GET /index.html HTTP/1.1\" 200 5123 \"-\" \"Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101 Firefox/115.0\" rt=0.005 up=0.004 host=www.example.com pool=blue zone=a"},
	{"json", `{"ts":"2025-01-02T15:04:05.123456Z","level":"info","msg":"request done","method":"GET","path":"/v1/users/1234","status":200,"duration_ms":12.4,"request_id":"9f1c2b7e-1d2a-4c5b-8e6f-0a1b2c3d4e5f"}`},
	{"api_key", `level=info ts=2025-01-02T15:04:05.123Z caller=handler.go:123 msg="api call finished" api=/api/v1/query key=cpu_usage user=alice org=12 duration=1.2ms bytes=4532 cache=miss status=200 tenant=team-a shard=3 x=1`},
	{"secret", `level=info ts=2025-01-02T15:04:05.123Z caller=handler.go:123 msg="login" user=alice token=ghp_16C7e42F292c6912E7710c838347Ae178B4a org=12 duration=1.2ms bytes=4532 cache=miss status=200 tenant=team-a shard=3`},
}

func BenchmarkFind(b *testing.B) {
	rs := defaultDetectors()
	s := new(scratch)
	for _, l := range timed {
		b.Run(l.name, func(b *testing.B) {
			b.SetBytes(int64(len(l.line)))
			b.ReportAllocs()
			for b.Loop() {
				rs.find(l.line, s, nil, regex.Guard{})
			}
		})
	}
}

func BenchmarkScan(b *testing.B) {
	rs := defaultDetectors()
	line := strings.Repeat("0123 4567 ", 20)
	var f rulesFound
	f.reset(len(rs.rules))
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		rs.words.scan(line, &f)
	}
}
