package secretfilter_test

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/zricethezav/gitleaks/v8/config"
	"github.com/zricethezav/gitleaks/v8/detect"

	"github.com/weir-run/weir/natives/loki/secretfilter"
)

var library = sync.OnceValue(func() *detect.Detector {
	d, err := detect.NewDetectorDefaultConfig()
	if err != nil {
		panic(err)
	}
	return d
})

// TestDefaultRules: the embedded file has the same version as the module in
// go.mod.
func TestDefaultRules(t *testing.T) {
	if secretfilter.DefaultRules() != config.DefaultConfig {
		t.Error("gitleaks.toml differs from that of the module: copy it, and name its version")
	}
}

// theirs returns the findings of Gitleaks in a line.
func theirs(line string) (fs []secretfilter.Found) {
	for _, f := range library().DetectString(line) {
		if f.Secret != "" {
			fs = append(fs, secretfilter.Found{Rule: f.RuleID, Secret: f.Secret})
		}
	}
	slices.SortFunc(fs, func(a, b secretfilter.Found) int {
		return cmp.Or(strings.Compare(a.Rule, b.Rule), strings.Compare(a.Secret, b.Secret))
	})
	return fs
}

func sameAsGitleaks(t *testing.T, line string) {
	t.Helper()
	ours, err := secretfilter.Find(nil, line)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(theirs(line), ours); diff != "" {
		t.Errorf("%q (-gitleaks +ours):\n%s", line, diff)
	}
}

const alnum = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// random is a random number generator with the same results on every system.
type random uint64

func (r *random) n(n int) int {
	*r = *r*6364136223846793005 + 1442695040888963407
	return int(uint64(*r)>>33) % n
}

func (r *random) text(of string, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = of[r.n(len(of))]
	}
	return string(b)
}

// TestLikeGitleaks compares the findings in generated lines: each keyword, in
// several contexts and cases, before secrets of many lengths and alphabets.
func TestLikeGitleaks(t *testing.T) {
	r := random(1)
	alphabets := []string{alnum, "0123456789abcdef", "abcdefghijklmnopqrstuvwxyz0123456789", "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", alnum + "-_", alnum + "+/=", alnum + "-_.~"}
	found := 0
	formats := []string{"%k%s", "x %k%s y", "%k=%s", "my_%k_key = \"%s\"", "\"%ktoken\":\"%s\",", "%k-api-key: %s;", "level=info K=%k secret=%s", "ſ %k_SECRET=%s é"}
	for i, k := range keywords() {
		for n := range 2 { // each line takes Gitleaks a millisecond, and ten with -race
			kw := k
			if r.n(4) == 0 {
				kw = strings.ToUpper(k)
			}
			secret := r.text(alphabets[r.n(len(alphabets))], []int{8, 16, 20, 24, 28, 32, 36, 40, 43, 48, 60, 64, 82, 100}[r.n(14)])
			line := strings.NewReplacer("%k", kw, "%s", secret).Replace(formats[(i+n*3)%len(formats)])
			found += len(theirs(line))
			sameAsGitleaks(t, line)
		}
	}
	if found < 100 {
		t.Errorf("got %d findings in all, which compares little", found)
	}
}

func keywords() (ks []string) {
	for k := range library().Config.Keywords {
		ks = append(ks, k)
	}
	slices.Sort(ks)
	return ks
}

func FuzzLikeGitleaks(f *testing.F) {
	for _, s := range []string{
		"", "key", "AKIA", `aws_key = "AKIAQYLPMN5HHHFPZAM2"`, "password: hunter2hunter2hunter2 # gitleaks:allow",
		"export K8S_API=\u212aey=fdsa78fds789afds7fds", "token=" + strings.Repeat("ab12", 10),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		if strings.Contains(line, "\n") {
			t.Skip() // Gitleaks determines the line of a match differently
		}
		sameAsGitleaks(t, line)
	})
}
