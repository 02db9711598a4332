//go:build unix

package httpclient_test

import (
	"strings"
	"testing"

	"github.com/weir-run/weir/engine/files/filestest"
	"github.com/weir-run/weir/engine/httpclient"
)

// TestUnreadable has a client use what must not be read as a token, a password, a
// secret and a CA.
func TestUnreadable(t *testing.T) {
	for name, edit := range map[string]func(a *httpclient.Arguments, path string){
		"bearer_token_file": func(a *httpclient.Arguments, path string) { a.BearerTokenFile = path },
		"credentials_file": func(a *httpclient.Arguments, path string) {
			a.Authorization = &httpclient.Authorization{Type: "Bearer", CredentialsFile: path}
		},
		"password_file": func(a *httpclient.Arguments, path string) {
			a.BasicAuth = &httpclient.BasicAuth{Username: "x", PasswordFile: path}
		},
		"client_secret_file": func(a *httpclient.Arguments, path string) {
			a.OAuth2 = &httpclient.OAuth2{ClientID: "x", ClientSecretFile: path, TokenURL: "http://127.0.0.1:1"}
		},
		"ca_file": func(a *httpclient.Arguments, path string) { a.TLSConfig.CAFile = path },
	} {
		for kind, path := range filestest.Special(t, "f") {
			filestest.Within(t, name+" that is a "+kind, func() {
				var a httpclient.Arguments
				a.SetToDefault()
				edit(&a, path)
				if _, err := a.Loaded(); err == nil || !strings.Contains(err.Error(), "cannot read file: ") {
					t.Errorf("Loaded: %s that is a %s: got %v", name, kind, err)
				}
				if _, err := a.Checked(); err == nil || !strings.Contains(err.Error(), "cannot read file: ") {
					t.Errorf("Checked: %s that is a %s: got %v", name, kind, err)
				}
				client, err := httpclient.NewClient(&a)
				if err == nil {
					res, rerr := client.Get("http://127.0.0.1:1")
					if err = rerr; res != nil {
						res.Body.Close()
					}
				}
				if err == nil || !strings.Contains(err.Error(), "cannot read file: ") {
					t.Errorf("%s that is a %s: got %v", name, kind, err)
				}
			})
		}
	}
}
