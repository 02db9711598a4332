package api

// labels defines the type of record.labels and series.labels. Any name can be
// read and set, so it has no members.
func (t *Table) labels() {
	t.Labels.Doc = "The labels without the name. Read and set them by name, and iterate over them with pairs. A missing label is nil; setting a label to nil removes it. Numbers and booleans are converted to strings."
	t.Labels.Fields = nil
}
