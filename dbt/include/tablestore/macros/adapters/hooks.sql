{#- Hooks of both kinds run; there is no transaction to commit in between. -#}
{%- macro run_hooks(hooks, inside_transaction=True) -%}
  {%- for hook in hooks | selectattr('transaction', 'equalto', inside_transaction) -%}
    {%- set rendered = render(hook.get('sql')) | trim -%}
    {%- if rendered | length > 0 -%}
      {%- call statement(auto_begin=inside_transaction) -%}
        {{ rendered }}
      {%- endcall -%}
    {%- endif -%}
  {%- endfor -%}
{%- endmacro -%}

{#- Files have no grants: say so once, however many nodes ask for some. -#}
{%- macro tablestore__apply_grants(relation, grant_config, should_revoke=True) -%}
  {%- if grant_config -%}
    {%- do adapter.tablestore_tell_ignored(relation, {"grants": grant_config}) -%}
  {%- endif -%}
{%- endmacro -%}
