// Package registry finds scripts and makes component.Registrations of them: the
// file http/paths.lua is the block http.paths. It runs no hooks; the Registration
// builds a node.Component.
//
// NewCatalog indexes the user's folder and the scripts that ship with weir
// (catalog.go, walk.go). A lookup reads the file and what it imports (imports.go),
// compiles it within a limit of time (compile.go), and registers it
// (registration.go): the type of its block, its manual, its checks (check.go) and
// its Audit (audit.go). The version is a hash of all files that were read.
//
// A change of a file makes the catalog forget the registrations that were made of
// it; the next lookup compiles again, and the engine rebuilds the nodes whose
// version differs. A script with tests takes over when they pass. A trial
// (trial.go) runs them and stores the versions that passed in package versions.
package registry
