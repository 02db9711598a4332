package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/weir-run/weir/engine/pkg/remote"
)

// overHTTP speaks the smart protocol, see
// https://git-scm.com/docs/http-protocol.
type overHTTP struct {
	url    string
	client *http.Client
	access remote.Access
	body   io.Closer
}

func dialHTTP(address string, a remote.Access) (session, error) {
	client, err := a.HTTPClient()
	if err != nil {
		return nil, err
	}
	return &overHTTP{url: strings.TrimSuffix(address, "/"), client: client, access: a}, nil
}

func (h *overHTTP) do(ctx context.Context, method, path, accept string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, h.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/x-git-upload-pack-request")
	}
	req.Header.Set("Accept", accept)
	if h.access.Username != "" || h.access.Password != "" {
		req.SetBasicAuth(h.access.Username, string(h.access.Password))
	}
	resp, err := h.client.Do(req)
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err // the caller names the URL
	}
	if err != nil {
		return nil, err
	}
	switch got := resp.Header.Get("Content-Type"); {
	case resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden:
		err = fmt.Errorf("the server answered %s: the repository does not exist, or basic_auth is missing or wrong", resp.Status)
	case resp.StatusCode != http.StatusOK:
		err = fmt.Errorf("the server answered %s, want 200 OK", resp.Status)
	case got != accept:
		err = fmt.Errorf("the answer has the type %q, want %q: the URL is not that of a Git repository", got, accept)
	}
	if err != nil {
		resp.Body.Close()
		return nil, err
	}
	return resp, nil
}

func (h *overHTTP) refs(ctx context.Context) (io.Reader, error) {
	resp, err := h.do(ctx, http.MethodGet, "/info/refs?service=git-upload-pack", "application/x-git-upload-pack-advertisement", nil)
	if err != nil {
		return nil, err
	}
	h.body = resp.Body
	return resp.Body, nil
}

func (h *overHTTP) upload(ctx context.Context, request []byte) (io.ReadCloser, error) {
	resp, err := h.do(ctx, http.MethodPost, "/git-upload-pack", "application/x-git-upload-pack-result", request)
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}

// Close closes the connection.
func (h *overHTTP) Close() error {
	if h.body != nil {
		h.body.Close()
	}
	h.client.CloseIdleConnections()
	return nil
}
