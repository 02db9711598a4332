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
//
// A Tap observes the batches of one node (Stats.Attach). It belongs to the
// node, so it stays when the component is replaced. Without a tap, a Receiver
// and an Output only load a nil pointer. With one, the Receiver puts the call
// into the context of the component, under a key of the node, and the Output
// finds it there: this is how the outputs of a call are matched with its input.
// A call is complete when the component has returned.
package flow
