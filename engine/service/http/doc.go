// Package http is the service behind weir's port: the page, health and reload
// endpoints, metrics, profiles, the status API, and what components serve.
//
// The same handlers are reached over TCP, in memory (HTTPData.DialContext with
// HTTPData.MemoryAddress) and, through Service.Handler, over the control
// socket. The last two are trusted: who is there has the process or its files
// anyway. Over TCP, what shows weir's inside asks for a Host that no foreign
// page can have (an IP address, localhost, the listen address), and what
// changes something or looks into the process works from this machine only, by
// POST where it changes something, and not from another origin. What components
// serve is for the network, as their exporters and webhooks are: it is not for
// foreign pages, which could else send from a user's browser what they like.
//
// The block http adds TLS and a password to that, for TCP only. How connections
// are met is one immutable posture (posture.go), replaced when the block, what
// it refers to or a file changes. While what the block asks for is not known,
// nobody is served; from TLS there is no way back to plaintext.
//
// It is not for receiving telemetry: components that do have ports of their own.
package http
