package engine

import (
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
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
