package echo

// RegistrationTo describes a loki.echo that prints to a writer.
var RegistrationTo = registration
