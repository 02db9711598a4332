// Package block is the block of a scripted component in the config: the Go struct
// type that the decoder fills for a Definition (TypeOf), the values that it filled
// in (ArgumentsOf), and the manual of what the host adds (Docs). The script's own
// arguments are declared in package scripting.
//
// The host adds forward_to and routes, for a source interval and listen, for a sink
// batch and journal, and the block script (Script), which has the limits of a
// call, the concurrency, what happens after an error, and what the script may
// reach (Allow). MissingGrants compares that with what the script needs.
package block
