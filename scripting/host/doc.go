// Package host implements ctx, the host functions of scripts: http, env, read,
// exec and secret (outside.go, http.go), state (state*.go), metrics
// (metrics.go, own_metrics.go), health, and the functions of one kind of
// component (source.go, sink.go). It also contains the request and the reply of
// the hook http. NewContext declares the functions; a language binds them.
//
// A function of ctx belongs to one VM. A Binding provides its component, and a
// Call the current call of a hook. A function that waits for external events
// uses Binding.Wait, which applies the limits of the block.
//
// An Access contains the resources that an instance of a node may use: those
// that the script needs and the block grants. Tests replace external resources
// with an Outside.
package host
