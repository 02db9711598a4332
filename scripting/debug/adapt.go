package debug

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/google/go-dap"
)

// Target is the node that a client wants to debug. It consists of attributes of the
// request attach, which come from the settings of an editor, such as launch.json.
type Target struct {
	Node    string `json:"node"`        // such as http.paths.default
	Where   string `json:"where"`       // see 'weir debug --where'; may be empty
	Storage string `json:"storagePath"` // may be empty
}

// Adapt serves a client that names the node in its request attach or launch. connect
// begins the session of that node, which receives the messages in body. If it returns
// an error, the client shows it. Adapt returns when the client or the session ends. It
// may leave a goroutine that waits for in.
func Adapt(in io.Reader, out io.Writer, connect func(t Target, body io.Reader) (answer io.ReadCloser, err error)) error {
	s := New("", out)
	r := bufio.NewReader(in)
	var first []byte // the request initialize
	for {
		content, err := dap.ReadBaseMessage(r)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot read a request of the debugger: %w", err)
		}
		m, err := dap.DecodeProtocolMessage(content)
		if err != nil {
			return fmt.Errorf("cannot read a request of the debugger: %w", err)
		}
		req, ok := m.(dap.RequestMessage)
		if !ok {
			continue
		}
		var args json.RawMessage
		switch m := req.(type) {
		case *dap.InitializeRequest:
			first = content
			s.send(initialized(m))
			continue
		case *dap.DisconnectRequest:
			s.handle(m)
			return nil
		case *dap.AttachRequest:
			args = m.Arguments
		case *dap.LaunchRequest:
			args = m.Arguments
		}
		// The session gets the following messages only if it begins.
		rest, feed := io.Pipe()
		answer, err := attach(first, content, args, rest, connect)
		if err != nil {
			feed.Close()
			s.refuse(req.GetRequest(), err)
			continue
		}
		defer answer.Close()
		go func() {
			_, err := io.Copy(feed, r)
			feed.CloseWithError(err)
		}()
		session := bufio.NewReader(answer)
		if _, err = dap.ReadBaseMessage(session); err == nil { // the second response to initialize
			_, err = io.Copy(out, session)
		}
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("cannot pass on the messages of the debugger: %w", err)
		}
		return nil
	}
}

// attach begins the session that the client has asked for with the requests first and
// content.
func attach(first, content []byte, args json.RawMessage, rest io.Reader, connect func(Target, io.Reader) (io.ReadCloser, error)) (io.ReadCloser, error) {
	if first == nil {
		return nil, errors.New("the first request must be initialize")
	}
	if args == nil {
		return nil, errors.New("the request after initialize must be attach")
	}
	var t Target
	if err := json.Unmarshal(args, &t); err != nil {
		return nil, fmt.Errorf("cannot read the attributes of the request: %w", err)
	}
	if t.Node == "" {
		return nil, errors.New(`there is no attribute "node" with the name of the node, such as http.paths.default`)
	}
	var requests bytes.Buffer
	for _, c := range [][]byte{first, content} {
		if err := dap.WriteBaseMessage(&requests, c); err != nil {
			return nil, err
		}
	}
	return connect(t, io.MultiReader(&requests, rest))
}
