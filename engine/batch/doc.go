// Package batch holds the data that components hand to each other: series,
// samples and log lines in columns.
//
// A batch is an immutable value. Whoever builds one may write to it until it
// is handed on; from then on nobody writes to it and anybody may keep it, for
// as long as it likes. A changed batch is a new one that shares every column
// it did not change. Batches are therefore never pooled.
//
// A series travels as a handle, *Series: a source makes one per series and
// uses it in every batch. What a component derives from labels alone it keeps
// in a Memo, indexed by the handle's dense ID. Handles are not label identity:
// two handles may have equal labels. Who keys state by series uses Hash plus
// Equal.
//
// A batch has two forms of bytes: text (AppendText, ParseText) for people, tests
// and what scripts post, binary (AppendBinary, ParseBinary) for queues on disk.
// Both hold everything but the Origin.
//
// This package is not for moving batches (package flow) nor for any wire
// format but the label encoding that sinks copy. It imports nothing of ours.
package batch
