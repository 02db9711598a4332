// Package push is the form in which log lines come to Loki and go there: the
// push request in protobuf, its streams' labels as text, and the names around
// it. What it reads it does not copy. It is no component, and neither compresses
// nor speaks HTTP.
//
//	PushRequest { repeated Stream streams = 1 }
//	Stream      { string labels = 1; repeated Entry entries = 2 }
//	Entry       { Timestamp timestamp = 1; string line = 2; repeated Label structuredMetadata = 3 }
//	Timestamp   { int64 seconds = 1; int32 nanos = 2 }
//	Label       { string name = 1; string value = 2 }
//
// Streams are a repeated field, so requests that are written one behind the
// other are one request.
//
// Format: https://grafana.com/docs/loki/latest/reference/loki-http-api/#ingest-logs
package push

const (
	// Path is where requests are posted, below the server's URL.
	Path = "/loki/api/v1/push"
	// TenantHeader is the header that names the tenant.
	TenantHeader = "X-Scope-OrgID"
	// TenantLabel is the label whose value is the tenant of a stream. It is never
	// sent, like any label that begins with two underscores.
	TenantLabel = "__tenant_id__"
	// ContentType is that of a request, which is compressed with snappy.
	ContentType = "application/x-protobuf"
)
