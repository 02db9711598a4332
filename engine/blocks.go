package engine

import (
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/pkg"
)

// Block is a block of a component in the config.
type Block struct {
	ID       string
	Position string // file:line
	component.Registration
	// Args are the arguments as far as they are known without running anything.
	// They are nil if the registration is broken.
	Args any
}

// Blocks returns the blocks of components in the config at path, including
// those of modules. The other results are those of Check.
func (e *Engine) Blocks(path string) ([]Block, *config.Config, config.Diagnostics) {
	cfg, ds := config.Load(path)
	p, more := e.makePlan(cfg, planMode{})
	cfg.Files = p.files
	var blocks []Block
	for _, w := range p.list {
		if w.kind == kindComponent {
			blocks = append(blocks, Block{ID: w.id, Position: w.position(), Registration: w.reg, Args: w.args})
		}
	}
	return blocks, cfg, append(append(ds, more...), p.brokenOnes()...).Sort()
}

// Import is an import block that reads files.
type Import struct {
	ID       string
	Position string // file:line
	// Path is the file or the folder that is imported, as shown to people.
	Path string
}

// Imports returns the blocks import.file and import.scripts of the config at path,
// including those of modules. The other results are those of Check.
func (e *Engine) Imports(path string) ([]Import, *config.Config, config.Diagnostics) {
	cfg, ds := config.Load(path)
	p, more := e.makePlan(cfg, planMode{})
	cfg.Files = p.files
	var imports []Import
	for _, w := range p.list {
		if w.kind != kindImport {
			continue
		}
		if said := w.source.im.File + w.source.im.Scripts; said != "" { // it has one of them
			imports = append(imports, Import{ID: w.id, Position: w.position(), Path: w.m.names.path(said)})
		}
	}
	return imports, cfg, append(append(ds, more...), p.brokenOnes()...).Sort()
}

// Policy returns the block policy of the config at path, as far as it can be read. It
// is never nil.
func (e *Engine) Policy(path string) *pkg.Policy {
	cfg, _ := config.Load(path)
	p, _ := e.makePlan(cfg, planMode{})
	return p.policy
}
