package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/flowchart"
)

// graphFormats are the output formats of weir graph.
var graphFormats = []string{"dot", "svg"}

func graphCommand(t *terminal) *cobra.Command {
	var scripts, format string
	cmd := &cobra.Command{
		Use:   "graph CONFIG",
		Short: "Draw a config",
		Long: `Draw the nodes of a config, a file or a directory of *.alloy files, and the data
flow between them, as DOT for Graphviz or as SVG. Nothing is started. Solid lines
show the flow of data; a dashed line leads from a node to a node that refers to
its exports. The web page of a running weir shows the live graph.

If the config contains a mistake, nothing is drawn and the exit code is 1.`,
		Example: `  weir graph config.alloy | dot -Tpng > graph.png
  weir graph --format=svg /etc/weir > graph.svg`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) > 1:
				return fmt.Errorf("graph takes one config, not %d; several files of a directory are one config", len(args))
			case len(args) == 0:
				return errors.New("name a config to draw, a file or a directory of *.alloy files")
			case !slices.Contains(graphFormats, format):
				return fmt.Errorf("--format must be %s, not %q", strings.Join(graphFormats, " or "), format)
			}
			return nil
		},
		RunE: failed(func(_ *cobra.Command, args []string) error {
			chart, err := chartOf(t, args[0], scripts)
			if err != nil {
				return err
			}
			if format == "svg" {
				return chart.WriteSVG(t.out, flowchart.SVGOptions{})
			}
			return chart.WriteDOT(t.out)
		}),
	}
	cmd.ValidArgsFunction = configFiles(oneConfig)
	cmd.Flags().StringVar(&format, "format", "dot", "dot or svg")
	cmd.Flags().StringVar(&scripts, "scripts", "", "folder of scripts (default: scripts next to the config)")
	return cmd
}

// chartOf returns the chart of a config. It prints the mistakes of the config.
func chartOf(t *terminal, path, scripts string) (*flowchart.Chart, error) {
	e, err := lookingEngine(path, scripts, "", scriptsUse{})
	if err != nil {
		return nil, err
	}
	nodes, services, cfg, ds := e.Graph(path)
	if err := ds.Write(t.err, cfg.Files, t.errColor); err != nil {
		return nil, err
	}
	if ds.HasErrors() {
		errs, _ := errors.AsType[config.Diagnostics](ds.Err())
		fmt.Fprintln(t.err, count(len(errs), "mistake"))
		return nil, &exitError{code: exitFailed}
	}
	return flowchart.Of(nodes, services), nil
}
