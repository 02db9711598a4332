// Package debug is a server of the Debug Adapter Protocol for one script, in any
// language. A Session belongs to one client. Program returns the scripting.Debug with
// which the script is compiled; while the script runs, it calls the session before
// each statement, and waits there while it is stopped.
//
// The package does not run the script and does not know where the connection of the
// client comes from. Everything that reads or changes the script runs on the
// goroutine of the script.
//
// Protocol: https://microsoft.github.io/debug-adapter-protocol/specification
package debug
