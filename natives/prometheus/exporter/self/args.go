package self

// Arguments of prometheus.exporter.self: there are none.
type Arguments struct{}
