package main

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// bundled are the files of a support bundle that the running weir answers.
var bundled = []struct{ file, path, about string }{
	{"config.txt", "/api/v0/config", "the text of the config that runs, with the modules that it imports"},
	{"status.json", "/api/v0/status", "the config as weir has evaluated it: all nodes with their arguments, health and counters"},
	{"reloads.json", "/api/v0/reloads", "the last 100 changes of the graph"},
	{"history.json", "/api/v0/history", "throughput and health of the nodes in the last hour"},
	{"audit.json", "/api/v0/audit", "the last 200 requested changes"},
	{"log.txt", "/api/v0/log", "the last log lines, at most 512 KiB"},
	{"metrics.txt", "/metrics", "the metrics of weir"},
	{"goroutines.txt", "/debug/pprof/goroutine?debug=2", "what weir is doing"},
	{"heap.pb.gz", "/debug/pprof/heap", "what is in memory, for go tool pprof"},
	{"cpu.pb.gz", "/debug/pprof/profile?seconds=%d", "CPU time of some seconds, for go tool pprof"},
}

func supportBundleCommand(t *terminal) *cobra.Command {
	var dir, out string
	cmd := &cobra.Command{
		Use:   "support-bundle",
		Short: "Write everything that helps to find a problem into one file",
		Long: `Write a ZIP file about the weir that runs with the storage path: its version, the
text of its config and what weir has evaluated it to, the health and the throughput of its
nodes, recent reloads, requested changes and log lines, its metrics, and profiles. This
takes five seconds.

Secrets are masked, and the file contains no records. It does contain the names of hosts,
paths and labels: read it before you send it to somebody. If weir cannot answer a request,
errors.txt contains the reason.

The exit code is 1 if the file cannot be written or something is missing, and 2 if no weir
runs with the storage path.`,
		Example: `  weir support-bundle
  weir support-bundle --storage.path=/var/lib/weir --out=/tmp/weir.zip`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("support-bundle takes no %q: name the file with --out", args[0])
			}
			return nil
		},
		RunE: failed(func(cmd *cobra.Command, _ []string) error {
			if err := checkStorage(dir); err != nil {
				return err
			}
			if out == "" {
				out = bundleName(time.Now())
			}
			// A weir that does not run leaves no file.
			if _, err := readAnswer(ask(cmd.Context(), dir, http.MethodGet, "/-/ready", "text/plain", nil)); err != nil {
				if _, refused := errors.AsType[*refusedError](err); !refused {
					return err
				}
			}
			missing, err := createBundle(cmd.Context(), out, func(ctx context.Context, path string) (io.ReadCloser, error) {
				return ask(ctx, dir, http.MethodGet, path, "text/plain", nil)
			})
			if err != nil {
				return fmt.Errorf("cannot write the support bundle: %w", err)
			}
			t.printStatus("written", out)
			return missing
		}),
	}
	storageFlag(cmd.Flags(), &dir)
	cmd.Flags().StringVar(&out, "out", "", "the file to write, which must not exist (default: weir-support-TIME.zip)")
	return cmd
}

// bundleName returns the usual name of a bundle.
func bundleName(now time.Time) string {
	return "weir-support-" + now.Format("20060102-150405") + ".zip"
}

// getter returns the answer of weir to a request for a path. It accepts text.
type getter func(ctx context.Context, path string) (io.ReadCloser, error)

// bundleSeconds is the usual time for which a bundle measures CPU time.
const bundleSeconds = 5

// createBundle writes a bundle to a new file. missing joins the reasons why files are not
// in it.
func createBundle(ctx context.Context, out string, get getter) (missing, err error) {
	f, err := os.OpenFile(out, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			os.Remove(out)
		}
	}()
	return writeBundle(ctx, f, get, bundleSeconds)
}

// writeBundle writes a bundle. missing joins the reasons why files are not in it.
func writeBundle(ctx context.Context, out io.Writer, get getter, seconds int) (missing, err error) {
	z := zip.NewWriter(out)
	now := time.Now()
	add := func(name string) (io.Writer, error) {
		return z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: now})
	}
	text := func(name, text string) error {
		w, err := add(name)
		if err == nil {
			_, err = io.WriteString(w, text)
		}
		return err
	}
	about := "A support bundle of weir, " + now.UTC().Format(time.RFC3339) + ". Secrets are masked.\n\nversion.txt: the version of the command that wrote it\n"
	for _, b := range bundled {
		about += b.file + ": " + b.about + "\n"
	}
	if err := errors.Join(text("README.txt", about), text("version.txt", versionText())); err != nil {
		return nil, err
	}
	for _, b := range bundled {
		path := b.path
		if strings.Contains(path, "%d") {
			path = fmt.Sprintf(path, seconds)
		}
		answer, err := get(ctx, path)
		if err != nil {
			missing = errors.Join(missing, fmt.Errorf("cannot add %s: %w", b.file, err))
			continue
		}
		w, err := add(b.file)
		if err != nil {
			answer.Close()
			return nil, err
		}
		if err := copyAnswer(w, answer, nil); err != nil {
			missing = errors.Join(missing, fmt.Errorf("cannot add all of %s: %w", b.file, err))
		}
	}
	if missing != nil {
		if err := text("errors.txt", missing.Error()+"\n"); err != nil {
			return nil, err
		}
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return missing, z.Close()
}
