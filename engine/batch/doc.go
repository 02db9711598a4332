// Package batch contains the data that components pass to each other: series,
// samples and log lines in columns.
//
// A batch is an immutable value. Its creator may modify it until it passes it
// on. After that, nobody may modify it and anybody may keep it for as long as
// they like. To change a batch, create a new batch that shares every unchanged
// column. Batches are therefore never pooled.
//
// A series is represented by a handle, *Series. A source creates one handle per
// series and uses it in every batch. A component caches values derived from
// labels alone in a Memo, indexed by the handle's dense ID. A handle does not
// identify a label set: two handles may have equal labels. To key state by
// series, use Hash and Equal.
//
// A batch has three encodings: text (AppendText, ParseText) for people, tests and
// data that scripts post, binary (AppendBinary, ParseBinary) for queues on disk,
// and frames (FrameEncoder, FrameDecoder) for a stream to another process. Text
// and binary contain everything except the Origin.
//
// This package does not move batches (see package flow) and implements no wire
// format except the label encoding that sinks copy. It imports no other package
// of weir.
package batch
