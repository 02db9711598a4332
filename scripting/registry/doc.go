// Package registry finds scripts and creates component.Registrations for them:
// the file http/paths.lua is the block http.paths. It runs no hooks; the
// Registration builds a node.Component.
//
// NewCatalog indexes the user's folder and the scripts that ship with weir
// (catalog.go, walk.go). A lookup reads the file and its imports (imports.go),
// compiles it within a time limit (compile.go), and registers it
// (registration.go): the type of its block, its manual, its checks (check.go)
// and its Audit (audit.go). The version is a hash of all files that were read.
//
// If a file changes, the catalog discards the registrations that depend on it.
// The next lookup compiles again, and the engine rebuilds the nodes whose
// version differs. A new version of a script with tests becomes active when
// they pass. A trial (trial.go) runs them and stores the versions that passed
// in package versions.
package registry
