package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/plugin/host"
)

func pluginsCommand(t *terminal) *cobra.Command {
	var dir, format string
	cmd := &cobra.Command{
		Use:   "plugins",
		Short: "List the plugins",
		Long: `List the plugins that weir finds: files named weir-plugin-NAMESPACE in the folder
plugins next to the scripts folder, and next to the weir binary. On Windows, the names
end in .exe. weir starts each plugin to ask for its version, its licence and its
components. The digest is the SHA-256 of the file.

The exit code is 1 if a plugin cannot be used.`,
		Example: `  weir plugins
  weir plugins --scripts=/etc/weir/scripts
  weir plugins --format=json | jq -r '.[].components[]'`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) > 0:
				return errors.New("plugins takes no arguments")
			case format != "text" && format != "json":
				return fmt.Errorf("cannot use --format=%s: it must be text or json", format)
			}
			return nil
		},
		RunE: failed(func(*cobra.Command, []string) error {
			dir, err := scriptsDir(dir, ".")
			if err != nil {
				return cannotStart(err)
			}
			c := newPlugins(dir, nil)
			defer c.Close()
			list := c.List()
			if format == "json" {
				err = writeJSON(t, list)
			} else {
				err = writePlugins(t.out, list)
			}
			for _, p := range list {
				if p.Error != "" {
					return errors.Join(err, &exitError{code: exitFailed})
				}
			}
			return err
		}),
	}
	cmd.Flags().StringVar(&dir, "scripts", "", "folder of scripts (default: ./scripts)")
	cmd.Flags().StringVar(&format, "format", "text", "text or json")
	return cmd
}

// writePlugins prints one line for each plugin.
func writePlugins(w io.Writer, list []host.Info) error {
	tw := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(tw, "NAME\tVERSION\tLICENCE\tSHA256\tCOMPONENTS\tPATH")
	for _, p := range list {
		about := strings.Join(p.Components, ", ")
		if p.Error != "" {
			about = "broken: " + p.Error
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%s\t%s\n", p.Namespace, config.Printable(p.Version), config.Printable(p.Licence), p.Digest, config.Printable(about), p.Path)
	}
	return tw.Flush()
}
