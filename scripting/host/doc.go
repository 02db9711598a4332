// Package host is what a script reaches through ctx: http, env, read, exec and
// secret (outside.go, http.go), state (state*.go), metrics (metrics.go,
// own_metrics.go), health, and what belongs to one kind of component (source.go,
// sink.go). It also has the request and the reply of the hook http. NewContext
// declares the functions; a language binds them.
//
// A function of ctx belongs to one VM. It learns from a Binding which component
// that is, and from a Call in which call of a hook it runs. A function that waits
// for the outside world does so in Binding.Wait, which applies the limits of the
// block.
//
// An Access is what an instance of a node may reach: what the script needs and the
// block grants. Tests replace the outside world with an Outside.
package host
