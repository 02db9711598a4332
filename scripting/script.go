package scripting

// script is a compiled script, as its components need it.
type script struct {
	name      string
	version   string
	file      File
	program   Program
	def       *Definition
	newArgs   func() any // arguments with the defaults filled in
	outside   Outside
	modules   []*Module                   // the standard library
	recompile func(File) (*script, error) // the same component from another text
}
