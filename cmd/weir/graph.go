package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/flowchart"
	"github.com/weir-run/weir/engine/service"
)

// graphFormats are the output formats of weir graph.
var graphFormats = []string{"dot", "mermaid", "json"}

func graphCommand(t *terminal) *cobra.Command {
	var scripts, format string
	cmd := &cobra.Command{
		Use:   "graph CONFIG",
		Short: "Draw a config",
		Long: `Draw the nodes of a config, a file or a directory of *.alloy files, and the data
flow between them: as DOT for Graphviz, for Mermaid, or as JSON. Nothing is started.
Solid lines show the flow of data; a dashed line leads from a node to a node
that refers to its exports. The web page of a running weir shows the live graph, and
GET /api/v0/graph returns it in the same JSON, with rates.

If the config contains a mistake, nothing is drawn and the exit code is 1.`,
		Example: `  weir graph config.alloy | dot -Tpng > graph.png
  weir graph --format=mermaid /etc/weir > graph.mmd
  weir graph --format=json config.alloy | jq -r '.edges[] | .from + " " + .to'`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) > 1:
				return fmt.Errorf("graph takes one config, not %d; several files of a directory are one config", len(args))
			case len(args) == 0:
				return errors.New("name a config to draw, a file or a directory of *.alloy files")
			case !slices.Contains(graphFormats, format):
				return fmt.Errorf("--format must be one of %s, not %q", strings.Join(graphFormats, ", "), format)
			}
			return nil
		},
		RunE: failed(func(_ *cobra.Command, args []string) error {
			nodes, services, err := graphOf(t, args[0], scripts)
			if err != nil {
				return err
			}
			g := flowchart.Of(nodes, services, nil)
			switch format {
			case "json":
				return writeJSON(t, g)
			case "mermaid":
				return g.WriteMermaid(t.out)
			}
			return g.WriteDOT(t.out)
		}),
	}
	cmd.ValidArgsFunction = configFiles(oneConfig)
	cmd.Flags().StringVar(&format, "format", "dot", strings.Join(graphFormats, ", "))
	cmd.Flags().StringVar(&scripts, "scripts", "", "folder of scripts (default: scripts next to the config)")
	return cmd
}

// graphOf returns the nodes of a config, and the services that have a block. It prints
// the mistakes of the config.
func graphOf(t *terminal, path, scripts string) (nodes, services []service.Info, err error) {
	e, err := lookingEngine(path, scripts, "", scriptsUse{})
	if err != nil {
		return nil, nil, err
	}
	defer e.close()
	nodes, services, cfg, ds := e.Graph(path)
	if err := ds.Write(t.err, cfg.Files, t.errColor); err != nil {
		return nil, nil, err
	}
	if ds.HasErrors() {
		errs, _ := errors.AsType[config.Diagnostics](ds.Err())
		fmt.Fprintln(t.err, count(len(errs), "mistake"))
		return nil, nil, &exitError{code: exitFailed}
	}
	return nodes, services, nil
}
