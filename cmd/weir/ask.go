package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/weir-run/weir/engine/api"
	"github.com/weir-run/weir/engine/config"
	"github.com/weir-run/weir/engine/control"
)

// refusedError is the answer of a running weir to a request that it refuses.
type refusedError struct {
	status int    // of HTTP
	text   string // printable
}

func (e *refusedError) Error() string { return e.text }

// ask sends a request to the weir that runs with a storage directory. The caller closes
// the answer. accept is its media type, or empty. The error wraps a
// *control.NotRunningError if no weir runs, and is a *refusedError if weir refuses the
// request.
func ask(ctx context.Context, dir, method, path, accept string, body io.Reader) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, method, control.URL(path), body)
	if err != nil {
		return nil, fmt.Errorf("cannot ask weir: %w", err)
	}
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	resp, err := control.Client(dir).Do(req)
	if e, ok := errors.AsType[*control.NotRunningError](err); ok {
		return nil, cannotStart(e)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot ask weir: %w", err)
	}
	if resp.StatusCode < 300 {
		return resp.Body, nil
	}
	text, err := readAnswer(resp.Body, nil)
	if err != nil {
		return nil, err
	}
	var answer api.Error
	if json.Unmarshal([]byte(text), &answer) == nil && answer.Error.Message != "" {
		text = config.Printable(answer.Error.Message)
	}
	return nil, &refusedError{resp.StatusCode, text}
}

// readAnswer returns the answer of ask as printable text.
func readAnswer(answer io.ReadCloser, err error) (string, error) {
	if err != nil {
		return "", err
	}
	defer answer.Close()
	text, err := io.ReadAll(answer)
	if err != nil {
		return "", fmt.Errorf("cannot read the answer: %w", err)
	}
	return config.Printable(strings.TrimSpace(string(text))), nil
}

// copyAnswer copies the answer of ask.
func copyAnswer(to io.Writer, answer io.ReadCloser, err error) error {
	if err != nil {
		return err
	}
	defer answer.Close()
	if _, err := io.Copy(to, answer); err != nil {
		return fmt.Errorf("cannot read the answer: %w", err)
	}
	return nil
}

// askJSON is ask with an answer that is decoded.
func askJSON(ctx context.Context, dir, method, path string, body io.Reader, into any) error {
	answer, err := ask(ctx, dir, method, path, "application/json", body)
	if err != nil {
		return err
	}
	defer answer.Close()
	if err := json.NewDecoder(answer).Decode(into); err != nil {
		return fmt.Errorf("cannot read the answer: %w", err)
	}
	return nil
}
