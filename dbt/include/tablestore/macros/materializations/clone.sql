{#- dbt clone: a view of the other schema's table, as dbt does where tables cannot be cloned; dbt-spark's asks for Delta. -#}
{%- materialization clone, adapter='tablestore' -%}
  {{ return(materialization_clone_default()) }}
{%- endmaterialization -%}

{%- macro tablestore__can_clone_table() -%}
  {{ return(false) }}
{%- endmacro -%}
