package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/google/pprof/profile"
	"github.com/spf13/cobra"

	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/files"
	"github.com/weir-run/weir/scripting/node"
)

func profileCommand(t *terminal) *cobra.Command {
	var dir, out string
	var all bool
	seconds := int(node.DefaultProfile / time.Second)
	longest := int(node.MaxProfile / time.Second)
	cmd := &cobra.Command{
		Use: "profile NODE | --all", Short: "Show in which lines a script spends its time",
		Long: `Write a profile of the script of a node, or of all nodes that run scripts. The
functions in the profile are those of the scripts, with the lines of the source files,
also for TypeScript. 'go tool pprof' shows it as a table, a graph or a flame graph.

The time includes the functions of weir that a line calls. The page about operating
weir lists what a profile does not contain, such as memory. The exit code is 2 when
no weir runs with the storage path.`,
		Example: `  weir profile http.paths.default
  go tool pprof -top -lines weir-profile.pb.gz
  weir profile --all --seconds 60 --out all.pb.gz
  go tool pprof -http=localhost:8080 all.pb.gz`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case all && len(args) > 0:
				return errors.New("profile takes the name of one node or --all, not both")
			case !all && len(args) != 1:
				return errors.New("profile takes the name of one node, or --all")
			case seconds < 1 || seconds > longest:
				return fmt.Errorf("--seconds must be from 1 to %d, not %d", longest, seconds)
			}
			return nil
		},
		ValidArgsFunction: scriptedNodes(&dir),
		RunE: failed(func(cmd *cobra.Command, nodes []string) (err error) {
			if err := checkStorage(dir); err != nil {
				return err
			}
			if all {
				if nodes, err = runningNodes(cmd.Context(), dir); err == nil && len(nodes) == 0 {
					err = errors.New("no node runs a script")
				}
			} else {
				err = checkScripted(cmd.Context(), dir, nodes[0], "can be profiled only with the rest of weir: go tool pprof http://ADDRESS/debug/pprof/profile")
			}
			if err != nil {
				return err
			}
			p, err := profileNodes(cmd.Context(), dir, nodes, seconds)
			if p == nil {
				return err
			}
			return errors.Join(writeProfile(t, p, out), err)
		}),
	}
	storageFlag(cmd.Flags(), &dir)
	cmd.Flags().BoolVar(&all, "all", false, "profile all nodes that run scripts")
	cmd.Flags().IntVar(&seconds, "seconds", seconds, fmt.Sprintf("how long to profile, at most %d", longest))
	cmd.Flags().StringVar(&out, "out", "weir-profile.pb.gz", "the file to write; an existing file is replaced")
	return cmd
}

// profileNodes profiles nodes at the same time. It returns the profile of those
// that it could profile, or nil, and the errors of the other nodes.
func profileNodes(ctx context.Context, dir string, nodes []string, seconds int) (*profile.Profile, error) {
	var wg sync.WaitGroup
	profiles, errs := make([]*profile.Profile, len(nodes)), make([]error, len(nodes))
	for i, id := range nodes {
		wg.Go(func() { profiles[i], errs[i] = profileNode(ctx, dir, id, seconds) })
	}
	wg.Wait()
	var got []*profile.Profile
	for _, p := range profiles {
		if p != nil {
			got = append(got, p)
		}
	}
	if len(got) == 0 {
		return nil, errors.Join(errs...)
	}
	all, err := mergeProfiles(got)
	if err != nil {
		return nil, errors.Join(append(errs, err)...)
	}
	return all, errors.Join(errs...)
}

// mergeProfiles merges profiles of the same time, whose durations are not added.
func mergeProfiles(ps []*profile.Profile) (*profile.Profile, error) {
	all, err := profile.Merge(ps)
	if err != nil {
		return nil, fmt.Errorf("cannot merge the profiles: %w", err)
	}
	all.DurationNanos = ps[0].DurationNanos
	for _, p := range ps[1:] {
		all.DurationNanos = max(all.DurationNanos, p.DurationNanos)
	}
	return all, nil
}

func profileNode(ctx context.Context, dir, id string, seconds int) (*profile.Profile, error) {
	u := url.URL{Path: "/api/v0/control/" + id + "/profile", RawQuery: "seconds=" + strconv.Itoa(seconds)}
	answer, err := ask(ctx, dir, http.MethodGet, u.String(), "", nil)
	if err != nil {
		return nil, err
	}
	defer answer.Close()
	p, err := profile.Parse(answer)
	if err != nil {
		return nil, fmt.Errorf("cannot read the profile of %s: %w", id, err)
	}
	return p, nil
}

func writeProfile(t *terminal, p *profile.Profile, path string) error {
	var samples int64
	for _, s := range p.Sample {
		samples += s.Value[0]
	}
	if samples == 0 {
		return fmt.Errorf("there is nothing to show: the scripts ran for less than %s in this time; profile for longer, with --seconds", time.Duration(p.Period))
	}
	var body bytes.Buffer
	if err := p.Write(&body); err != nil {
		return fmt.Errorf("cannot write the profile: %w", err)
	}
	if err := files.Replace(path, body.Bytes(), false); err != nil {
		if e, ok := errors.AsType[*fs.PathError](err); ok {
			err = e.Err
		}
		return fmt.Errorf("cannot write the profile to %s: %w", path, err)
	}
	fmt.Fprintf(t.out, "wrote %d samples, one per %s, to %s\nshow them with: go tool pprof -top -lines %s\n",
		samples, time.Duration(p.Period), config.Printable(path), config.Printable(path))
	return nil
}
