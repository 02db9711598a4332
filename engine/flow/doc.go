// Package flow moves batches between components. A Receiver is the gate in
// front of a graph node. An Output is a node's fan-out to the gates of other
// nodes.
//
// Components call each other and never share channels. A nil error means that
// the batch was accepted, with the guarantee of the receiver (a sink: the batch
// is in the journal). Blocking is backpressure. Any error returns to the
// source, which alone decides whether to retry. A context error means that the
// batch was not accepted.
//
// If some destinations of a batch fail, the error is a *Partial. It knows the
// data that is still to be sent and its receivers. A retry sends only this
// data, however far down the graph the refusal happened.
package flow
