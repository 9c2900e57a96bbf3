"""The `airflow archive` commands: one file a command, named like it, each imported only when it runs.

`import_file` and `print_object` are `import` and `print`. `arguments`, `completion`, `names` are what commands share;
`doctor_checks` and `imported_yaml` do the work of one each.
"""
