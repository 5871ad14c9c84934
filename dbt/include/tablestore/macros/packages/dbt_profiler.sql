{#- dbt_profiler has its words for Spark under the name of Databricks. Found with
    `dispatch: [{macro_namespace: dbt_profiler, search_order: [dbt, dbt_profiler]}]`. -#}

{% macro tablestore__get_profile(
    relation, exclude_measures=[], include_columns=[], exclude_columns=[], where_clause=none, group_by=[]) %}
  {{ return(dbt_profiler.databricks__get_profile(
      relation, exclude_measures, include_columns, exclude_columns, where_clause, group_by)) }}
{% endmacro %}
