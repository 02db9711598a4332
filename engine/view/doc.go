// Package view gives scripts a window on a batch: it reads an immutable batch,
// and records a script's edits separately.
//
// It is independent of the script language. The package of a VM wraps the
// windows Metrics and Logs in its own values. This package contains everything
// that is common to all languages and must be fast: the batch operations, the
// Cache of results by series, and Apply, which creates a new batch that shares
// every column that was not edited.
//
// There are three rules. A script's edits never change the source batch. A row
// keeps its index until Apply: dropped rows are skipped, not removed. Fields
// that a script does not set are never converted: NaN payloads, staleness
// markers, native histograms, exemplars and start timestamps stay the same.
package view
