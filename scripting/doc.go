// Package scripting is the contract between weir, scripts and the languages of
// scripts. It runs nothing and is independent of any language.
//
// A script is a component. Its Definition (definition.go, define_*.go) contains
// the kind of component (kinds.go), its arguments (args*.go), its hooks and the
// external resources that it needs. A Language (language.go) compiles a File to
// a Program, whose VMs run the hooks in a Call. Scripts call a Function of a
// Module or a method of an ObjectType (module.go) with a Value. Manuals, types
// for editors and the linter use the same tables. An Error (errors.go) has a
// position in a script. A Tester (tests.go) is a Language in which tests can be
// written.
//
// The packages below this one use the contract:
//
//	registry  finds scripts, compiles them and creates component.Registrations
//	node      runs a script as a node: transforms, sources and sinks
//	host      implements ctx, the host functions of scripts
//	block     the block of a scripted component in the config
//	lua, js   one Language each
//	api       the table of everything that scripts can call
//
// The limits protect against mistakes. They do not protect against an attacker
// who can write scripts.
package scripting
