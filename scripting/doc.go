// Package scripting is the contract between weir, scripts and the languages that
// scripts are written in. It runs nothing and knows no language.
//
// A script is a component. Its Definition (definition.go, define_*.go) says which
// kind of component it is (kinds.go), which arguments it has (args*.go), which
// hooks it implements and what it needs of the outside world. A Language
// (language.go) compiles a File to a Program, whose VMs run the hooks in a Call.
// Scripts call a Function of a Module or a method of an ObjectType (module.go)
// with a Value; manuals, types for editors and the linter read the same tables. An
// Error (errors.go) points into a script. A Tester (tests.go) is a Language in
// which tests are written.
//
// The packages below this one use the contract:
//
//	registry  finds scripts, compiles them and makes component.Registrations
//	node      runs a script as a node: transforms, sources and sinks
//	host      what a script reaches through ctx
//	block     the block of a scripted component in the config
//	lua, js   one Language each
//	api       the table of everything that scripts can call
//
// The limits contain mistakes. They do not protect against an attacker who can
// write scripts.
package scripting
