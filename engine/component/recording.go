package component

import "time"

// Recordable is a Component whose output depends on more than its input, so that
// `weir record` needs more than its input to repeat a call.
type Recordable interface {
	// Record calls f with each answer of an external system that the component gets
	// until stop is called, and with the answers that it got when it was set up. f is
	// called from several goroutines and must not block. The error is that somebody
	// else records the component.
	Record(f func(Answer)) (stop func(), err error)
	// RecordedState returns the component's state by name: maps, lists, strings, bools
	// and json.Number. It returns an error if the state is too large.
	RecordedState() (map[string]any, error)
}

// The kinds of an Answer.
const (
	AnswerHTTP = "http"
	AnswerFile = "files"
	AnswerExec = "exec"
	AnswerEnv  = "env"
	// AnswerSecret is not an answer: Text is a secret that a script has declared.
	AnswerSecret = "secret"
)

// Answer is the answer of an external system.
type Answer struct {
	Time time.Time `json:"time"`
	Kind string    `json:"what"`
	// Key is the request: the method and the URL, the path of a file, the name of a
	// program and its arguments, or the name of a variable.
	Key string `json:"key"`
	// Setup means that the component got the answer before it received records.
	Setup  bool              `json:"setup,omitempty"`
	Status int               `json:"status,omitempty"` // of HTTP, or the exit code of a program
	Header map[string]string `json:"headers,omitempty"`
	Text   string            `json:"body,omitempty"` // the body, the content, the value or the standard output
	Stderr string            `json:"stderr,omitempty"`
	Error  string            `json:"error,omitempty"` // why there is no answer
	// Absent means that the file does not exist.
	Absent bool `json:"absent,omitempty"`
	// Large means that the answer is too large to be recorded.
	Large bool `json:"large,omitempty"`
	// Secret means that Text is a secret as a whole.
	Secret bool `json:"secret,omitempty"`
}
