// Package egress performs the external requests of a script: it requests URLs,
// reads files and runs commands that its block grants (package grant), and
// nothing else. It does not know scripts: its callers have checked names
// against grants. It checks what can be checked only during a request, such as
// the address that a host resolves to or the target of a symbolic link.
//
// Everything is limited in size and by a context. The target of a redirect is
// checked like a first request. An address is checked when it is dialled, not
// when it is looked up. Secrets are not sent to another host and are not in
// errors.
package egress
