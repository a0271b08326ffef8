# The settings that most environments differ in; the module has more, described in its variables.tf.

variable "environment" {
  description = "Which environment this is: \"production\", \"staging\"."
  type        = string
}

variable "family" {
  description = "The event family that has these queues to itself."
  type        = string
  default     = "events"
}

variable "architecture" {
  description = "arm64 (cheaper) or x86_64."
  type        = string
  default     = "arm64"
}

variable "keep_data" {
  description = "Whether table and bucket refuse to be deleted."
  type        = bool
  default     = true
}

variable "tags" {
  description = "Tags on everything."
  type        = map(string)
  default     = {}
}

variable "producer_secrets" {
  description = "ARNs of the secrets that ingest may read."
  type        = list(string)
  default     = []
}

variable "recipient_secrets" {
  description = "ARNs of the secrets that the consumer may read."
  type        = list(string)
  default     = []
}

variable "secrets_kms_key_arns" {
  description = "Customer keys under which those secrets are encrypted."
  type        = list(string)
  default     = []
}

variable "maximum_concurrency" {
  description = "The most consumers at once."
  type        = number
  default     = 20
}

variable "operator_tenants" {
  description = "Tenants that have operators of their own: a policy for each."
  type        = set(string)
  default     = []
}
