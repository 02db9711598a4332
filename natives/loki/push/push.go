// Package push is the codec of Loki's push API: the push request in protobuf, the
// labels of streams as text, and the related names. Decoded strings alias the
// input. It is not a component, and it neither compresses nor uses HTTP.
//
//	PushRequest { repeated Stream streams = 1 }
//	Stream      { string labels = 1; repeated Entry entries = 2 }
//	Entry       { Timestamp timestamp = 1; string line = 2; repeated Label structuredMetadata = 3 }
//	Timestamp   { int64 seconds = 1; int32 nanos = 2 }
//	Label       { string name = 1; string value = 2 }
//
// Streams are a repeated field, so concatenated requests are one request.
//
// Format:
// https://grafana.com/docs/loki/latest/reference/loki-http-api/#ingest-logs
package push

const (
	// Path is the path of push requests, below the URL of the server.
	Path = "/loki/api/v1/push"
	// TenantHeader is the header that names the tenant.
	TenantHeader = "X-Scope-OrgID"
	// TenantLabel is the label whose value is the tenant of a stream. Like all
	// labels that begin with two underscores, it is never sent.
	TenantLabel = "__tenant_id__"
	// ContentType is the content type of a request, which is compressed with
	// snappy.
	ContentType = "application/x-protobuf"
)
