package api

// labels is the type of record.labels and series.labels: any name can be read
// and set, so it has no members of its own.
func (t *Table) labels() {
	t.Labels.Doc = "The labels without the name: read and set by name, gone over with pairs. A label that is not there is nil, and nil removes one. Numbers and booleans become text."
	t.Labels.Fields = nil
}
