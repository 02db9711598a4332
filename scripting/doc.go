// Package scripting makes components out of scripts: a file below the scripts
// directory becomes a component.Registration, its args a Go struct type, its
// hooks the body of ConsumeMetrics. The engine cannot tell the result from a
// native component, and this package does not know any language: those are
// Language implementations, one folder each (lua), listed by cmd.
//
// In data order: NewCatalog finds files and reads their Definition (manifest);
// a Registration builds a Component, which is one instance of a node; its
// pool lends a VM to each batch; the VM sees a view.Metrics and records edits;
// applied, they are the batch that is sent on.
//
// An instance lets batches in when its setup has worked, and is torn down
// after its last call; what must outlive it (what was sent last, timers,
// counters, state) is the node's memory, which the next component takes from the previous one.
//
// The rules to know: a VM serves one call at a time and is thrown away after
// it was killed by a limit; what a series hook decides is remembered per
// series for the life of the instance; a function that waits for the outside
// does so in worker.wait, where limits hold and the pool makes room.
//
// A component has one of three kinds (kinds.go), which share pools, timers,
// state, limits, errors and life. A transform is what the above speaks of. A
// source (source.go) has hooks that get no batch: ask runs one on a VM of the
// pool and takes what it emitted, an emission carries that to the receivers, and
// what a source could not send when it was replaced is left in a mailbox of the
// node. Timers and poll are beats; run has a VM and a runner of its own; what
// must not be at work in two instances takes its turn.
//
// Tests of scripts are run by package scripttest, and written in a language
// that is a Tester. A version of a script that has a test file runs when
// its tests pass. A trial finds that out and keeps the version that passed last in
// package versions.
//
// The limits contain mistakes. They are no wall against an attacker who can
// write scripts.
package scripting
