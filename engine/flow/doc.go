// Package flow moves batches between components: a Receiver is the gate in
// front of a graph node, an Output is a node's fan-out to other nodes' gates.
//
// Components call each other and never share channels. A nil error means that
// the batch was accepted, to the degree the receiver promises (a sink: it is
// in the journal); blocking is backpressure; any error returns to the source,
// which alone decides to retry. A context error means not accepted.
//
// A batch whose destination failed in part comes back as *Partial, which knows
// what is still to be sent and to whom; only that is retried, however far down
// the graph the refusal happened.
package flow
