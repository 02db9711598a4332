package self

// Arguments of prometheus.exporter.self. It has none.
type Arguments struct{}
