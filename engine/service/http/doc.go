// Package http is the service behind weir's port: the web UI, health and reload
// endpoints, metrics, profiles, the status API, and the HTTP handlers of
// components.
//
// The same handlers are available over TCP, over the control socket
// (Service.Handler) and in memory (HTTPData.DialContext with
// HTTPData.MemoryAddress). The control socket is trusted: only weir's user can
// open it. Over TCP, routes that run code, show data or change anything require
// credentials, even from this machine, which may have other users: the token of
// the token file, a session that a link started (session.go), or the login of
// the block http. Credentials are accepted over TLS or from this machine.
// Everyone may read metrics, health and the states of nodes, and use the
// handlers of components. Connections in memory have the same access: a scrape
// makes them, and its targets may be untrusted.
//
// Each route specifies who may use it (routes.go, access.go). Pages of other
// origins may not use anything that requires credentials. Handlers of
// components share weir's origin, so browsers are told to isolate their
// responses (contain.go).
//
// The block ui decides whether callers over TCP may see records and write files
// (allow.go).
//
// The block http adds TLS and a password, for TCP only. An immutable posture
// (posture.go) specifies how connections are accepted. It is replaced when the
// block, a value that it refers to or a file changes. While the posture is not
// known, no requests are served; changing from TLS to plaintext requires a
// restart.
//
// It is not for receiving telemetry: components that do so have their own
// ports.
package http
