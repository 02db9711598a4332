package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"github.com/weir-run/weir/engine/clock"
	"github.com/weir-run/weir/engine/component"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/scripting/node"
)

// switchPatience is how long weir rollback and weir unpin wait until the node runs the
// other version.
const switchPatience = 10 * time.Second

func diffCommand(t *terminal) *cobra.Command {
	return versionCommandOf(t, "diff NODE [VERSION]", "Compare a version of a script with the running version",
		`Print the differences between a version in the history of a node's script and the
version that the node runs, as a unified diff of all files that they are made of. The
default is the version that was active before the running one. VERSION is the
beginning of a version that 'weir history NODE' lists.

The exit code is 2 when no weir runs with the storage path.`,
		`  weir diff metrics.relabel.default
  weir diff metrics.relabel.default 9f8e7d6`, 2, diffVersions)
}

func rollbackCommand(t *terminal) *cobra.Command {
	return versionCommandOf(t, "rollback NODE [VERSION]", "Return a node to an older version of its script",
		`If a canary of a node runs and you name no VERSION, end the canary: the running version
stays active, and the new version is refused until its file or its block changes.

Otherwise, have the node run an older version from the history of its script; the
default is the version that was active before the running one. VERSION is the beginning of a version
that 'weir history NODE' lists.

The node is then pinned: it runs this version, also after a restart, until the files of
the script change or you run 'weir unpin'. Other nodes with the same script keep their
version. weir does not run the tests of a version that was active before. It switches to
it as it does after a save, without losing data.

The exit code is 1 when the node does not run the version within 10 seconds, and 2
when no weir runs with the storage path.`,
		`  weir rollback metrics.relabel.default
  weir rollback metrics.relabel.default 9f8e7d6`, 2, rollback)
}

func unpinCommand(t *terminal) *cobra.Command {
	return versionCommandOf(t, "unpin NODE", "Return a node to the version of its script that is on disk",
		`Have a node that 'weir rollback' pinned to an older version run the version on disk
again. weir tests that version first, as it does after a save.

The exit code is 1 when the node does not run the version within 10 seconds, for
example because its tests fail, and 2 when no weir runs with the storage path.`,
		`  weir unpin metrics.relabel.default`, 1, unpin)
}

// versionCommandOf returns a command that takes a node and, if most is 2, a version.
func versionCommandOf(t *terminal, use, short, long, example string, most int, run func(ctx context.Context, t *terminal, dir, node, version string) error) *cobra.Command {
	var dir string
	name, what, _ := strings.Cut(use, " ")
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long, Example: example,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 1 || len(args) > most {
				return fmt.Errorf("%s takes %s; 'weir history' lists the nodes", name, what)
			}
			return nil
		},
		RunE: failed(func(cmd *cobra.Command, args []string) error {
			if err := checkStorage(dir); err != nil {
				return err
			}
			if err := checkScripted(cmd.Context(), dir, args[0], noVersions); err != nil {
				return err
			}
			version := ""
			if len(args) == 2 {
				version = args[1]
			}
			return run(cmd.Context(), t, dir, args[0], version)
		}),
	}
	nodes := scriptedNodes(&dir)
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) == 1 && most == 2 {
			return completeVersions(cmd.Context(), dir, args[0], typed), cobra.ShellCompDirectiveNoFileComp
		}
		return nodes(cmd, args, typed)
	}
	storageFlag(cmd.Flags(), &dir)
	return cmd
}

// completeVersions completes the versions in the history of a node.
func completeVersions(ctx context.Context, dir, node, typed string) (out []cobra.Completion) {
	h, err := historyOf(ctx, dir, node)
	if err != nil {
		return nil
	}
	for _, v := range h.Versions {
		if short := component.ShortVersion(v.ID); v.ID != h.Running && strings.HasPrefix(short, typed) {
			out = append(out, cobra.CompletionWithDesc(short, "active since "+utc(v.Active)+" UTC"))
		}
	}
	return out
}

func diffVersions(ctx context.Context, t *terminal, dir, id, version string) error {
	var c node.Comparison
	if err := askJSON(ctx, dir, http.MethodGet, controlPath(id, "history/diff", version), nil, &c); err != nil {
		return err
	}
	var names []string
	texts := [2]map[string]string{{}, {}}
	for i, files := range c.Files {
		for _, f := range files {
			texts[i][f.Path] = f.Text
			names = append(names, f.Path)
		}
	}
	slices.Sort(names)
	same := true
	for _, name := range slices.Compact(names) {
		old, now := texts[0][name], texts[1][name]
		if d := diff.Diff(name+"@"+component.ShortVersion(c.Old), []byte(old), name+"@"+component.ShortVersion(c.New), []byte(now)); len(d) > 0 {
			same = false
			_, text, _ := strings.Cut(string(d), "\n") // the first line names the files once more
			if _, err := fmt.Fprint(t.out, config.Printable(text)); err != nil {
				return err
			}
		}
	}
	if same {
		_, err := fmt.Fprintf(t.out, "versions %s and %s have the same files\n", component.ShortVersion(c.Old), component.ShortVersion(c.New))
		return err
	}
	return nil
}

func rollback(ctx context.Context, t *terminal, dir, id, version string) error {
	var s node.Switch
	if err := askJSON(ctx, dir, http.MethodPost, controlPath(id, "rollback", version), nil, &s); err != nil {
		return err
	}
	if s.Canary != "" {
		_, err := fmt.Fprintln(t.out, config.Printable(s.Canary))
		return err
	}
	if err := awaitVersion(ctx, dir, id, s.To); err != nil {
		return err
	}
	_, err := fmt.Fprintf(t.out, "%s runs version %s instead of %s, until its files change or you run 'weir unpin %s'\n",
		config.Printable(id), component.ShortVersion(s.To), component.ShortVersion(s.From), config.Printable(id))
	return err
}

func unpin(ctx context.Context, t *terminal, dir, id, _ string) error {
	var s node.Switch
	if err := askJSON(ctx, dir, http.MethodPost, controlPath(id, "unpin", ""), nil, &s); err != nil {
		return err
	}
	if s.To == "" {
		return fmt.Errorf("%s is no longer pinned, but keeps version %s because the script on disk contains errors; 'weir check' lists them", id, component.ShortVersion(s.From))
	}
	if err := awaitVersion(ctx, dir, id, s.To); err != nil {
		return err
	}
	_, err := fmt.Fprintf(t.out, "%s is no longer pinned and runs version %s\n", config.Printable(id), component.ShortVersion(s.To))
	return err
}

// awaitVersion waits until a node runs a version.
func awaitVersion(ctx context.Context, dir, id, version string) error {
	deadline := time.Now().Add(switchPatience)
	for {
		nodes, err := nodesOf(ctx, dir)
		if err != nil {
			return err
		}
		message := "it has left the config"
		if i := slices.IndexFunc(nodes, func(n statusNode) bool { return n.ID == id }); i >= 0 {
			if nodes[i].Version == version {
				return nil
			}
			message = nodes[i].Health.Message
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s does not run version %s yet: %s", id, component.ShortVersion(version), config.Printable(message))
		}
		if err := clock.Sleep(ctx, clock.System{}, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// controlPath is the path of what a node shows to its user.
func controlPath(id, what, version string) string {
	u := url.URL{Path: "/api/v0/control/" + id + "/" + what}
	if version != "" {
		u.RawQuery = url.Values{"version": {version}}.Encode()
	}
	return u.String()
}
