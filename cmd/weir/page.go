package main

import (
	"fmt"
	"net/http"

	"github.com/spf13/cobra"
)

func pageCommand(t *terminal) *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "page",
		Short: "Print a link that opens the page of a running weir",
		Long: `Print a link that opens the page of the weir that runs with the storage path. The
link works once, within 10 minutes, in a browser on the same machine or over TLS.
The browser can then use the page for 12 hours, or until weir stops. Anyone who
has the link can use the page and with it everything that weir may do, so keep it
to yourself.

API clients do not need a link. They send the token in the file weir.token of the
storage directory, which only the user that weir runs as can read, over TLS or
from the same machine:

  curl -H @<(printf 'Authorization: Bearer '; cat data-weir/weir.token) http://127.0.0.1:12345/api/v0/status

Or they use the socket weir.sock in the same directory, which needs no token:

  curl --unix-socket data-weir/weir.sock http://weir/api/v0/status

The exit code is 2 when no weir runs with the storage path.`,
		Example: `  weir page
  weir page --storage.path=/var/lib/weir`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("page takes no %q: choose the weir with --storage.path", args[0])
			}
			return nil
		},
		RunE: failed(func(cmd *cobra.Command, _ []string) error {
			if err := checkStorage(dir); err != nil {
				return err
			}
			text, err := readAnswer(ask(cmd.Context(), dir, http.MethodPost, "/-/page", "text/plain", nil))
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(t.out, text)
			return err
		}),
	}
	storageFlag(cmd.Flags(), &dir)
	return cmd
}
