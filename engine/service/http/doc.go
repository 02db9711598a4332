// Package http is the service behind weir's port: the page, health and reload
// endpoints, metrics, profiles, the status API, and what components serve.
//
// The same handlers are reached over TCP, over the control socket
// (Service.Handler) and in memory (HTTPData.DialContext with
// HTTPData.MemoryAddress). The control socket is trusted: only weir's user can
// open it. Over TCP, what runs code, shows data or changes anything needs
// credentials, also from this machine, which may have other users: the token of
// the token file, a session that a link started (session.go), or the login of the
// block http. Credentials are accepted over TLS or from this machine. Everyone
// may read metrics, health and the states of nodes, and use what components
// serve. Connections in memory reach only that: a scrape makes them, and its
// targets may come from elsewhere.
//
// Each route says who may use it (routes.go, access.go). Pages of other origins
// may use nothing that needs credentials. What components serve has weir's
// origin, so a browser is told to isolate it (contain.go).
//
// The block http adds TLS and a password to that, for TCP only. How connections
// are met is one immutable posture (posture.go), replaced when the block, what
// it refers to or a file changes. While what the block asks for is not known,
// nobody is served; from TLS there is no way back to plaintext.
//
// It is not for receiving telemetry: components that do have ports of their own.
package http
