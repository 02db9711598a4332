package remotewrite

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/prometheus/common/config"
	"github.com/prometheus/prometheus/storage/remote/azuread"
	"github.com/prometheus/prometheus/storage/remote/googleiam"
	"github.com/prometheus/sigv4"

	"github.com/weir-run/weir/engine/component"
)

// SigV4 signs requests for AWS. Arguments that are not set are taken from AWS's
// default chain: its environment variables, files and metadata service.
type SigV4 struct {
	// Region, such as "eu-west-1".
	Region string `alloy:"region,attr,optional"`
	// Access key; needs secret_key.
	AccessKey string `alloy:"access_key,attr,optional"`
	// Secret of the access key.
	SecretKey component.Secret `alloy:"secret_key,attr,optional"`
	// Profile of the shared configuration files.
	Profile string `alloy:"profile,attr,optional"`
	// Role to assume.
	RoleARN string `alloy:"role_arn,attr,optional"`
	// External ID to assume the role with.
	ExternalID string `alloy:"external_id,attr,optional"`
	// Whether the role is requested from a FIPS endpoint.
	UseFIPSSTSEndpoint bool `alloy:"use_fips_sts_endpoint,attr,optional"`
	// Service to sign for. Default: "aps".
	ServiceName string `alloy:"service_name,attr,optional"`
}

func (s *SigV4) config() *sigv4.SigV4Config {
	return &sigv4.SigV4Config{
		Region: s.Region, AccessKey: s.AccessKey, SecretKey: config.Secret(s.SecretKey), Profile: s.Profile,
		RoleARN: s.RoleARN, ExternalID: s.ExternalID, UseFIPSSTSEndpoint: s.UseFIPSSTSEndpoint, ServiceName: s.ServiceName,
	}
}

// Validate returns all errors in the block.
func (s *SigV4) Validate() error {
	if (s.AccessKey == "") != (s.SecretKey == "") {
		return errors.New("access_key and secret_key must be set together")
	}
	return s.config().Validate()
}

// AzureAD gets tokens from Microsoft Entra ID. Exactly one nested block defines
// the identity.
type AzureAD struct {
	// Cloud: "AzurePublic", "AzureGovernment" or "AzureChina".
	Cloud string `alloy:"cloud,attr,optional"`
	// Scope of the tokens. Default: the scope of the cloud for Azure Monitor.
	Scope string `alloy:"scope,attr,optional"`
	// A managed identity of this machine.
	ManagedIdentity *ManagedIdentity `alloy:"managed_identity,block,optional"`
	// A workload identity of this Kubernetes pod.
	WorkloadIdentity *WorkloadIdentity `alloy:"workload_identity,block,optional"`
	// An application, by its secret.
	OAuth *AzureOAuth `alloy:"oauth,block,optional"`
	// An application, by its certificate.
	Certificate *AzureCertificate `alloy:"certificate,block,optional"`
	// The credentials that Azure's SDK finds: environment variables, identities, the
	// CLI.
	SDK *AzureSDK `alloy:"sdk,block,optional"`
}

// ManagedIdentity is a managed identity of this machine.
type ManagedIdentity struct {
	// Its client ID. Default: the machine's own identity.
	ClientID string `alloy:"client_id,attr,optional"`
}

// WorkloadIdentity is a workload identity of this pod.
type WorkloadIdentity struct {
	// Its client ID.
	ClientID string `alloy:"client_id,attr"`
	// Its tenant ID.
	TenantID string `alloy:"tenant_id,attr"`
	// File with the token of the pod. Default: the value of
	// AZURE_FEDERATED_TOKEN_FILE, or
	// /var/run/secrets/azure/tokens/azure-identity-token.
	TokenFilePath string `alloy:"token_file_path,attr,optional"`
}

// AzureOAuth is an application that authenticates with a secret.
type AzureOAuth struct {
	// Its client ID.
	ClientID string `alloy:"client_id,attr"`
	// Its secret.
	ClientSecret component.Secret `alloy:"client_secret,attr"`
	// Its tenant ID.
	TenantID string `alloy:"tenant_id,attr"`
}

// AzureCertificate is an application that authenticates with a certificate.
type AzureCertificate struct {
	// Its client ID.
	ClientID string `alloy:"client_id,attr"`
	// Its tenant ID.
	TenantID string `alloy:"tenant_id,attr"`
	// File with the certificate, PEM or PFX.
	CertificatePath string `alloy:"certificate_path,attr"`
	// File with the key, PEM, if the certificate file does not contain it.
	CertificateKeyPath string `alloy:"certificate_key_path,attr,optional"`
	// Password of the certificate file.
	CertificatePassword component.Secret `alloy:"certificate_password,attr,optional"`
	// Whether the chain is sent, for authentication by subject name and issuer.
	SendCertificateChain bool `alloy:"send_certificate_chain,attr,optional"`
}

// AzureSDK uses the credentials that Azure's SDK finds.
type AzureSDK struct {
	// Tenant ID.
	TenantID string `alloy:"tenant_id,attr,optional"`
}

// SetToDefault sets Alloy's defaults.
func (a *AzureAD) SetToDefault() { *a = AzureAD{Cloud: azuread.AzurePublic} }

func (a *AzureAD) config() *azuread.AzureADConfig {
	c := &azuread.AzureADConfig{Cloud: a.Cloud, Scope: a.Scope}
	if i := a.ManagedIdentity; i != nil {
		c.ManagedIdentity = &azuread.ManagedIdentityConfig{ClientID: i.ClientID}
	}
	if i := a.WorkloadIdentity; i != nil {
		c.WorkloadIdentity = &azuread.WorkloadIdentityConfig{ClientID: i.ClientID, TenantID: i.TenantID, TokenFilePath: i.TokenFilePath}
	}
	if i := a.OAuth; i != nil {
		c.OAuth = &azuread.OAuthConfig{ClientID: i.ClientID, ClientSecret: config.Secret(i.ClientSecret), TenantID: i.TenantID}
	}
	if i := a.Certificate; i != nil {
		c.Certificate = &azuread.CertificateConfig{
			ClientID: i.ClientID, TenantID: i.TenantID, CertificatePath: i.CertificatePath, CertificateKeyPath: i.CertificateKeyPath,
			CertificatePassword: config.Secret(i.CertificatePassword), SendCertificateChain: i.SendCertificateChain,
		}
	}
	if i := a.SDK; i != nil {
		c.SDK = &azuread.SDKConfig{TenantID: i.TenantID}
	}
	return c
}

var azureTenant = regexp.MustCompile(`^[0-9a-zA-Z.-]+$`)

// Validate returns all errors in the block, joined.
func (a *AzureAD) Validate() error {
	var errs []error
	if !slices.Contains([]string{azuread.AzurePublic, azuread.AzureGovernment, azuread.AzureChina}, a.Cloud) {
		errs = append(errs, fmt.Errorf("cloud must be %q, %q or %q, not %q", azuread.AzurePublic, azuread.AzureGovernment, azuread.AzureChina, a.Cloud))
	}
	var whom []string
	for _, w := range []struct {
		name string
		set  bool
	}{
		{"managed_identity", a.ManagedIdentity != nil}, {"workload_identity", a.WorkloadIdentity != nil}, {"oauth", a.OAuth != nil},
		{"certificate", a.Certificate != nil}, {"sdk", a.SDK != nil},
	} {
		if w.set {
			whom = append(whom, w.name)
		}
	}
	if len(whom) != 1 {
		is := strings.Join(whom, " and ")
		if is == "" {
			is = "none"
		}
		errs = append(errs, fmt.Errorf("exactly one of managed_identity, workload_identity, oauth, certificate and sdk must be set, not %s", is))
	}
	tenants := a.tenants()
	for _, name := range slices.Sorted(maps.Keys(tenants)) {
		if tenant := tenants[name]; tenant != "" && !azureTenant.MatchString(tenant) {
			errs = append(errs, fmt.Errorf("%s: tenant_id %q is not valid", name, tenant))
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	return a.config().Validate() // client IDs, scope
}

func (a *AzureAD) tenants() map[string]string {
	ts := map[string]string{}
	if a.OAuth != nil {
		ts["oauth"] = a.OAuth.TenantID
	}
	if a.Certificate != nil {
		ts["certificate"] = a.Certificate.TenantID
	}
	if a.SDK != nil {
		ts["sdk"] = a.SDK.TenantID
	}
	return ts
}

// GoogleIAM gets tokens from Google.
type GoogleIAM struct {
	// File with the key of a service account. Default: the credentials that
	// Google's default chain finds.
	CredentialsFile string `alloy:"credentials_file,attr,optional"`
}

func (g *GoogleIAM) config() *googleiam.Config {
	return &googleiam.Config{CredentialsFile: g.CredentialsFile}
}

// auths returns the names of the authentication methods of the endpoint.
func (e *Endpoint) auths() []string {
	c := &e.Client
	var set []string
	for _, m := range []struct {
		name string
		set  bool
	}{
		{"basic_auth", c.BasicAuth != nil}, {"authorization", c.Authorization != nil}, {"oauth2", c.OAuth2 != nil},
		{"bearer_token", c.BearerToken != ""}, {"bearer_token_file", c.BearerTokenFile != ""},
		{"sigv4", e.SigV4 != nil}, {"azuread", e.AzureAD != nil}, {"google_iam", e.GoogleIAM != nil},
	} {
		if m.set {
			set = append(set, m.name)
		}
	}
	return set
}

// files returns the files that cloud authentication reads only once, when it is
// created. The client itself reads all other files again when they change.
func (e *Endpoint) files() (paths []string) {
	if e.GoogleIAM != nil {
		paths = append(paths, e.GoogleIAM.CredentialsFile)
	}
	if a := e.AzureAD; a != nil && a.Certificate != nil {
		paths = append(paths, a.Certificate.CertificatePath, a.Certificate.CertificateKeyPath)
	}
	return slices.DeleteFunc(paths, func(p string) bool { return p == "" })
}
