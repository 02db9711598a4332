package scripttest

import "github.com/weir-run/weir/scripting"

// fixtures are batches in text form with what is easily forgotten.
func fixtures() *scripting.Module {
	return &scripting.Module{
		Name: "fixtures",
		Doc:  "Batches in the text format with cases that are easily forgotten.",
		Consts: []scripting.Const{
			{Name: "every_metric_kind", Doc: "One family of each kind, with exemplars and start timestamps.", Value: everyMetricKind},
			{Name: "native_histograms", Doc: "Native histograms: integer, float, with custom buckets, and a staleness marker.", Value: nativeHistograms},
			{Name: "special_values", Doc: "Staleness markers, NaNs with and without a payload, infinities, zeros, the largest and smallest values.", Value: specialValues},
			{Name: "logs", Doc: "Log lines: JSON, logfmt, plain and empty ones, with metadata, nanoseconds and invalid UTF-8.", Value: someLogs},
			{Name: "odd_names", Doc: "Unusual names and labels, escapes, Unicode, and a sample without a name.", Value: oddNames},
		},
	}
}

const everyMetricKind = `# TYPE http_requests_total counter
# HELP http_requests_total Requests served.
http_requests_total{code="200",job="api"} 1027 st@1735600000000 # {trace_id="4bf92f3577b34da6"} 1 1735689599000
http_requests_total{code="500",job="api"} 3
# TYPE go_goroutines gauge
# HELP go_goroutines Number of goroutines that currently exist.
go_goroutines{job="api"} 12
# TYPE request_bytes gauge
# UNIT request_bytes bytes
request_bytes{job="api"} 1.5e+06
# TYPE rpc_seconds summary
rpc_seconds{job="api",quantile="0.5"} 0.25
rpc_seconds{job="api",quantile="0.99"} NaN
rpc_seconds_sum{job="api"} 17.5
rpc_seconds_count{job="api"} 42
# TYPE latency_seconds histogram
latency_seconds_bucket{job="api",le="0.1"} 8 # {trace_id="a1"} 0.07 1735689598000
latency_seconds_bucket{job="api",le="1.0"} 11
latency_seconds_bucket{job="api",le="+Inf"} 12
latency_seconds_sum{job="api"} 5.25
latency_seconds_count{job="api"} 12
# TYPE queue_seconds histogram
queue_seconds{job="api"} {count:12,sum:18.4,schema:1,zero_threshold:0.001,zero_count:2,positive_spans:[0:2,1:2],positive_buckets:[2,3,1,1],negative_spans:[0:1],negative_buckets:[3]}
# TYPE app info
app_info{job="api",version="1.2.3"} 1
# TYPE feature stateset
feature{feature="a",job="api"} 1
feature{feature="b",job="api"} 0
# TYPE mystery unknown
mystery{job="api"} -0.5
no_metadata_at_all{job="api"} 7
`

const nativeHistograms = `# TYPE h histogram
h{kind="integer"} {count:12,sum:18.4,schema:1,zero_threshold:0.001,zero_count:2,positive_spans:[0:2,1:2],positive_buckets:[2,3,1,1],negative_spans:[0:1],negative_buckets:[3]}
h{kind="float"} {counts:float,count:2.5,sum:3.25,schema:0,positive_spans:[0:2],positive_buckets:[1.5,1]}
h{kind="custom"} {count:3,sum:4,schema:-53,positive_spans:[0:2],positive_buckets:[1,2],custom_values:[0.5,2.5]}
h{kind="over"} stale
`

const specialValues = `v{is="stale"} stale
v{is="nan"} NaN
v{is="nan with a payload"} NaN(0x7ff8000000000123)
v{is="+inf"} +Inf
v{is="-inf"} -Inf
v{is="0"} 0
v{is="-0"} -0
v{is="largest"} 1.7976931348623157e+308
v{is="smallest"} 5e-324
v{is="2^53+2"} 9.007199254740994e+15
`

const oddNames = `{"my.metric",job="api"} 1
{"größe in m²",job="api"} 2
plain{"dotted.label"="x"} 3
plain{escapes="a \"quoted\" line\nand a \\ backslash"} 4
plain{unicode="Zürich, 東京, 🎛"} 5
{job="no name"} 6
`

const someLogs = `{app="api",env="prod"} @2025-01-01T00:00:00.000000001Z {trace_id="4bf92f3577b34da6"} {"level":"info","msg":"started","took_ms":12}
{app="api",env="prod"} @2025-01-01T00:00:00.000000002Z {trace_id="4bf92f3577b34da6",user=""} {"level":"warn","id":9007199254740993,"nested":{"list":[1,null,[]]}}
{app="web"} level=error msg="it said \"no\"" status=500
{app="web"} 10.0.0.1 - - [01/Jan/2025:00:00:00 +0000] "GET /users/42 HTTP/1.1" 200 512
{} ""
{"odd label"="x",unicode="Zürich, 東京"} "a tab\tand two\nlines, a byte \xff"
{app="api",env="prod"} { this is no JSON
`
