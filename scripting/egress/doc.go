// Package egress is the way out of a script: it asks URLs, reads files and runs
// commands that its block grants (package grant), and nothing else. It knows no
// script: what it is asked for comes from package scripting, which has checked
// names against grants; what can be checked only on the way, such as the address
// that a host resolves to or where a symbolic link leads, is checked here.
//
// The rules to know: everything is bounded, in size and by a context; where a
// redirect leads is checked like a first request; an address is checked when it
// is dialled, not when it is looked up; secrets do not follow to another host and
// are in no error.
package egress
