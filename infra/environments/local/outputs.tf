output "waybill" {
  description = "Everything that the module puts out."
  value       = module.waybill
}
