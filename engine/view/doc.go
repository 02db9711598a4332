// Package view gives scripts a window on a batch: reads of an immutable
// batch.Metrics, and the edits that a script records over it.
//
// It knows no language. A VM package wraps Metrics in its own values; what is
// the same for every language, and what must be fast, is here: the batch
// operations, what a Cache remembers of series, and Apply, which makes
// one new batch that shares every column that was not edited.
//
// Three rules. A script's edit never reaches the source batch. A row keeps its
// index until Apply: dropped rows are skipped, not closed up. What a script
// does not set is never converted: NaN payloads, staleness markers, native
// histograms, exemplars and start timestamps come out as they went in.
package view
